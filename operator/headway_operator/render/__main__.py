"""``python3 -m headway_operator.render FILE``: see :mod:`headway_operator.dry_run`."""

from headway_operator.dry_run import main

if __name__ == "__main__":
    main()
