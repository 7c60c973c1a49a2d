import * as z from "zod/mini";
import { success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { parseBody } from "../../shared/http/parse-body.ts";

/**
 * Body fields of the gateway itself, in OpenRouter's format, the same on every endpoint. No provider receives
 * them.
 */
export const gatewayFields = z.object({
  /** OpenRouter's old way to request usage. Only a stream of an OpenAI endpoint leaves it out otherwise. */
  usage: z.nullish(z.looseObject({ include: z.nullish(z.boolean()) })),
});
type Fields = z.infer<typeof gatewayFields>;

/** The gateway's fields of a request. */
export type GatewayFields = { readonly wantsUsage: boolean };

const NAMES = Object.keys(gatewayFields.shape);
const NONE: GatewayFields = { wantsUsage: false };

/** Splits a body into the gateway's fields and the rest. 400 with `param` for an invalid one. */
export function takeGatewayFields(
  body: object,
): Result<{ readonly fields: GatewayFields; readonly rest: object }> {
  if (!NAMES.some((name) => Object.hasOwn(body, name))) {
    return success({ fields: NONE, rest: body });
  }
  const parsed = parseBody(gatewayFields, body);
  if (!parsed.ok) return parsed;
  const rest = Object.entries(body).filter(([name]) => !NAMES.includes(name));
  return success({ fields: fieldsOf(parsed.value), rest: Object.fromEntries(rest) });
}

function fieldsOf({ usage }: Fields): GatewayFields {
  return { wantsUsage: usage?.include === true };
}
