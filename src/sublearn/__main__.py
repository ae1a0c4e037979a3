"""Makes ``python -m sublearn`` the command line."""

from sublearn.cli import main

if __name__ == "__main__":
    main()
