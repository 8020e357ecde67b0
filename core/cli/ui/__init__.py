"""What commands share: options, tables, output, progress, and the store that they open."""
