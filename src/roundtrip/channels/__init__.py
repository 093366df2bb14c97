"""The only code that sends to users' servers and chats."""
