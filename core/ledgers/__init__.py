"""The ledgers that ship: a directory, a SQLite file, a PostgreSQL database. Import the one that is wanted."""
