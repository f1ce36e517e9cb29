"""The script that Streamlit runs again at every click; see `dashboard.app`."""

from dashboard.app import main

main()
