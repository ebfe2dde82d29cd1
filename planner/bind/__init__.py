"""Name resolution and typing: AST to Query tree and bound statements."""
