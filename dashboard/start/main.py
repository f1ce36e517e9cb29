"""The script that Streamlit runs at each interaction with a page; see `dashboard.app`."""

from ctxbench.dashboard.app import main

main()
