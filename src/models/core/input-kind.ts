import type * as z from "zod/mini";
import { parseFields } from "../../shared/http/parse-body.ts";
import type { FieldsSchema } from "../../shared/http/parse-body.ts";
import { success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import type { Model } from "../catalog/model.ts";
import type { PromptSize } from "./prompt-size.ts";
import type { CountedUnit } from "../../shared/usage.ts";
import { removeNulls } from "./core-request.ts";
import type { RouteNeed } from "./route-needs.ts";

export type InputKindRules<Body, U extends CountedUnit = never> = {
  size(body: Body, model: Model): PromptSize & UnitsOf<U>;
  needs(body: Body, model: Model): readonly RouteNeed[];
  readonly sizeAdvice: { readonly advice: string; readonly param: string };
};

type UnitsOf<U extends CountedUnit> = [U] extends [never]
  ? object
  : { readonly units: { readonly [K in U]: number } };

export type ParsedInputRequest<Body> = { readonly body: Body; readonly user: string | null };

/**
 * Parses a body and separates its end user. A null field counts as absent. Fails with 400 and
 * `param` for an invalid or unknown field.
 */
export function parseInput<S extends FieldsSchema & z.ZodMiniType<{ user?: string | undefined }>>(
  schema: S,
  value: object,
): Result<ParsedInputRequest<Omit<z.infer<S>, "user">>> {
  const parsed = parseFields(schema, [], removeNulls(value));
  if (!parsed.ok) return parsed;
  const { user = null, ...body } = parsed.value;
  return success({ body, user });
}
