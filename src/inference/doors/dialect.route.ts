import type { Context, Next } from "hono";
import type { AppEnv } from "../../http/context.ts";
import { speaksMessages } from "../../catalog/models.route.ts";
import { DOORS } from "./doors.ts";
import { messagesDialect } from "./messages/dialect.ts";

const DIALECTS = DOORS.flatMap(({ path, dialect }) =>
  dialect === null ? [] : [{ path, below: `${path}/`, dialect }],
);

/** Before everything that may refuse: whose words a refusal on this path is said in. */
export function speakDialect(c: Context<AppEnv>, next: Next): Promise<void> {
  const path = c.req.path.replace(/^\/v1(?=\/v1\/)/, ""); // a client that adds it too is still told in its words
  if (/^\/v1\/models(?:\/|$)/.test(path) && speaksMessages(c)) c.set("dialect", messagesDialect);
  for (const door of DIALECTS) {
    if (path !== door.path && !path.startsWith(door.below)) continue;
    const dialect = door.dialect({
      header: (name) => c.req.header(name),
      query: (name) => c.req.query(name),
    });
    if (dialect !== null) c.set("dialect", dialect);
  }
  return next();
}
