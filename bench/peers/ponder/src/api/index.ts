// Ponder wants a server of its own; nobody asks it anything but whether it is ready.
import { Hono } from "hono";

export default new Hono();
