"""The script that Streamlit runs at each click; see `dashboard.app`."""

from ctxbench.dashboard.app import main

main()
