"""Real servers, real DBOS schemas and real tools for the tests."""
