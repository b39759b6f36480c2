"""What numbers to expect: of a GPU, of compiled code, of a model of the two; nothing runs here."""
