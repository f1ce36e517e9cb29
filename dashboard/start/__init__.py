"""The start script, in a folder of its own: Streamlit takes a `pages` folder beside its script for its own kind."""
