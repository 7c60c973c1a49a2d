import * as z from "zod";
import type * as core from "zod/v4/core";
import { timeParameterSchema } from "../../src/shared/http/parse-body.ts";
import { DOLLARS_MAX } from "../../src/shared/money.ts";
import { opaqueObjectSchema } from "../../src/models/core/core-request.ts";
import { formFileSchema } from "../../src/models/core/image-edit.ts";
import { audioFileSchema } from "../../src/models/core/transcription.ts";
import { daySchema } from "../../src/money/wallet/routes/usage.route.ts";

export type Json = Record<string, unknown>;

/** Constraints of schemas with checks in code, which zod can't convert. */
const KNOWN: ReadonlyMap<core.$ZodType, Json> = new Map<core.$ZodType, Json>([
  [opaqueObjectSchema, { type: "object" }],
  [audioFileSchema, { type: "string", format: "binary" }],
  [formFileSchema, { type: "string", format: "binary" }],
  [daySchema, { type: "string", format: "date" }],
  [timeParameterSchema, { type: "string", anyOf: [{ format: "date-time" }, { format: "date" }] }],
]);

/** An end user's name: at most 256 bytes without control characters, and neither `.` nor `..`. */
const CONTROL = "\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029";
const EXTERNAL_ID = {
  minLength: 1,
  maxLength: 256,
  pattern: `^[^${CONTROL}]*[^.${CONTROL}][^${CONTROL}]*$`,
};
const EXTERNAL_ID_FIELDS = /^properties\/(?:user|end_user|external_id)(?:\/anyOf\/0)?$/;

/**
 * Returns the JSON Schema of a request (`input`) or response (`output`), with named parts in
 * `$defs`.
 */
export function jsonSchema(schema: core.$ZodType, io: "input" | "output"): Json {
  const { $schema: _dialect, ...whole } = z.toJSONSchema(schema, {
    io,
    unrepresentable: "any",
    reused: "inline",
    override: ({ zodSchema, jsonSchema: made, path }) => {
      const known = KNOWN.get(zodSchema);
      if (known !== undefined) Object.assign(made, { pattern: undefined }, known);
      const isMoney =
        made.type === "number" && path.some((step) => String(step).endsWith("_dollars"));
      if (isMoney && io === "input") Object.assign(made, { minimum: 0, maximum: DOLLARS_MAX });
      const isName = made.type === "string" && EXTERNAL_ID_FIELDS.test(path.join("/"));
      if (isName && io === "input") Object.assign(made, EXTERNAL_ID);
    },
  }) as Json;
  return whole;
}

export type QueryParameter = { readonly name: string; readonly schema: Json };

/**
 * Returns a query's parameters. Values that are parsed from text have the type of the parsed value.
 */
export function queryOf(schema: core.$ZodType & { readonly shape: object }): QueryParameter[] {
  return Object.entries(schema.shape as Record<string, core.$ZodType>).map(([name, field]) => {
    const [said, meant] = [jsonSchema(field, "input"), jsonSchema(field, "output")];
    const told = withoutNull(meant["type"] === "integer" ? meant : said);
    return { name, schema: isFlag(told) ? { type: "boolean", default: false } : told };
  });
}

/** Reports whether a schema is `true` or `false` with the default `false`. */
function isFlag({ enum: values, default: preset }: Json): boolean {
  return JSON.stringify(values) === '["true","false"]' && preset === "false";
}

/** Removes null, which a query can't contain. */
function withoutNull({ anyOf, type, default: preset, ...schema }: Json): Json {
  const some = (anyOf as Json[] | undefined)?.find((one) => one["type"] !== "null");
  const one = [type].flat().find((word) => word !== "null");
  const told = preset === null || preset === "" || preset === undefined ? {} : { default: preset };
  return { ...schema, ...(one !== undefined && { type: one }), ...some, ...told };
}
