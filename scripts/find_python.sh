#!/bin/sh
# Prints the first Python on the path that is new enough and can make virtual environments, or "python3" where there is
# none: install.sh then says what is wrong with it.
for candidate in python3 python3.13 python3.12 python3.11 python; do
    if "$candidate" -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
        echo "$candidate"
        exit 0
    fi
done
echo python3
