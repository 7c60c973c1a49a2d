import type { Context, Next } from "hono";
import { fail } from "../../shared/http/context.ts";
import type { AppEnv } from "../../shared/http/context.ts";
import { logEvent } from "../../shared/log.ts";
import { getDeployment } from "./deployment.ts";

/**
 * Middleware that returns 503 `misconfigured` while the configuration of models, providers or
 * aliases has problems.
 */
export async function requireSoundDeployment(
  c: Context<AppEnv>,
  next: Next,
): Promise<Response | undefined> {
  const { problems } = getDeployment(c.get("config"));
  if (problems.length > 0) {
    const variables = problems.map(({ variable, problem }) => ({ variable, problem }));
    logEvent("misconfigured", { request_id: c.var.requestId, variables });
    return fail(c, { kind: "misconfigured" });
  }
  await next();
  return undefined;
}
