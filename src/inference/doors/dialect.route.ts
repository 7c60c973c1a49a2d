import type { Context, Next } from "hono";
import type { Dialect } from "../../http/dialect.ts";
import type { AppEnv } from "../../http/context.ts";
import { DOORS } from "./doors.ts";

const DIALECTS: readonly (readonly [string, Dialect])[] = DOORS.flatMap(({ path, dialect }) =>
  dialect === null ? [] : [[path, dialect] as const],
);

/** Before everything that may refuse: whose words a refusal on this path is said in. */
export function speakDialect(c: Context<AppEnv>, next: Next): Promise<void> {
  const { path } = c.req;
  for (const [door, dialect] of DIALECTS) {
    if (path === door || path.startsWith(`${door}/`)) c.set("dialect", dialect);
  }
  return next();
}
