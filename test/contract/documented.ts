import { OPERATIONS } from "../../scripts/openapi/operations.ts";
import type { Operation } from "../../scripts/openapi/operation.ts";
import { error } from "../../scripts/openapi/records.ts";
import { routingPath } from "../../src/http/routing-path.ts";
import * as z from "zod";

const OPERATION_PATHS = OPERATIONS.map((operation) => ({
  operation,
  pattern: new RegExp(`^${operation.path.replaceAll(/\{\w+\}/g, tail(operation))}$`),
}));

/** Ids of models and end users may hold slashes; no other parameter does. */
function tail({ path }: Operation): string {
  return /^\/v1\/(?:models|users)\//.test(path) ? ".+" : "[^/]+";
}

/**
 * Throws when an answer is not what the OpenAPI document says: its status, its JSON to the last field.
 * Passes over streams, paths that are no operation and the errors of other dialects than OpenAI's.
 */
export async function checkDocumented(request: Request, response: Response): Promise<void> {
  const at = routingPath(request);
  const found = OPERATION_PATHS.find(
    ({ operation, pattern }) =>
      operation.method === request.method.toLowerCase() && pattern.test(at),
  );
  const isOwn = !request.headers.has("anthropic-version") && !at.startsWith("/v1/messages");
  const isJson = response.headers.get("content-type") === "application/json";
  if (found === undefined || !isJson || (response.status >= 400 && !isOwn)) return;
  const { operation } = found;
  const schema = response.status >= 400 ? error : operation.answers[response.status];
  const what = `${request.method} ${operation.path}: ${response.status}`;
  if (schema === undefined) throw new Error(`${what} is not in scripts/openapi/operations.ts`);
  const checked = z.safeParse(schema, await response.clone().json());
  if (checked.success) return;
  throw new Error(`${what} is not as scripts/openapi says: ${z.prettifyError(checked.error)}`);
}
