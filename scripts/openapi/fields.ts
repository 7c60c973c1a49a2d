import * as z from "zod";

export const micros = z.int().describe("Micro-credits: a millionth of a dollar.");
export const dollars = z.number().describe("Dollars, with at most 6 decimals.");
export const count = z.int().min(0);
export const time = z.iso.datetime().describe("UTC, ISO 8601 with milliseconds.");
export const day = z.iso.date().describe("UTC.");
export const uuid = z.uuid();

const names = z.array(z.string()).nullable();
export const policy = z
  .strictObject({
    allowed_models: names.describe("Model IDs and `author/*`. Null allows everything, [] nothing."),
    allowed_providers: names,
    allowed_data_regions: names.describe("Of `eu`, `us` and `global`."),
  })
  .nullable()
  .describe("The allowed models, providers and data regions. Null allows everything.");

export function record<T extends z.ZodRawShape>(id: string, shape: T) {
  return z.strictObject(shape).meta({ id });
}

/** A record that can have other fields. */
export function loose<T extends z.ZodRawShape>(id: string, shape: T) {
  return z.looseObject(shape).meta({ id });
}

export const paged = { total: count, limit: count, offset: count };

/** The organization of a listed object. Names are null if the database has lost it. */
export const owner = z.strictObject({
  id: z.string(),
  slug: z.string().nullable(),
  name: z.string().nullable(),
});
