"""The script that Streamlit runs at every click; see `dashboard.app`."""

from ctxbench.dashboard.app import main

main()
