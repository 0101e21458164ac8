"""The published contract: schemas, examples and checks of what reads them."""
