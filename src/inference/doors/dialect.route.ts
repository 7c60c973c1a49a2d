import type { Context, Next } from "hono";
import type { AppEnv } from "../../http/context.ts";
import { DOORS } from "./doors.ts";

const DIALECTS = DOORS.flatMap(({ path, dialect }) =>
  dialect === null ? [] : [{ path, below: `${path}/`, dialect }],
);

/** Before everything that may refuse: whose words a refusal on this path is said in. */
export function speakDialect(c: Context<AppEnv>, next: Next): Promise<void> {
  const { path } = c.req;
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
