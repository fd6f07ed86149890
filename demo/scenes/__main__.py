import sys

from demo.scenes.play import main

sys.exit(main())
