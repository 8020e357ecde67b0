"""What the SQL ledgers have in common, above the statements that each engine names alike and writes in its own way."""
