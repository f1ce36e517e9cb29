"""The dashboard: the stored runs as web pages and as one report file. It reads the store and runs nothing."""
