# SPDX-License-Identifier: BSD-3-Clause
"""`python -m linerate` is the command `linerate`."""

from linerate.cli import main

if __name__ == "__main__":
    main()
