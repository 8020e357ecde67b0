"""The model: jobs, inputs, receipts and effects as values, and every rule about them as a pure function."""
