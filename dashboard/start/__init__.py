"""Where Streamlit starts. A folder of its own: Streamlit takes `pages` beside its script for pages of its own kind."""
