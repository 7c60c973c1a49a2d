/** The units, besides tokens, that can be billed. A price is for `per` units. */
export const UNIT_TABLE = {
  image: { name: "images", per: 1 },
  character: { name: "characters", per: 1_000_000 },
  second: { name: "seconds", per: 1_000_000 },
  request: { name: "requests", per: 1 },
  search_unit: { name: "search units", per: 1 },
  image_token: { name: "image output tokens", per: 1_000_000 },
  text_token: { name: "text output tokens", per: 1_000_000 },
  page: { name: "pages", per: 1 },
  audio_token: { name: "audio output tokens", per: 1_000_000 },
  input_image_token: { name: "image input tokens", per: 1_000_000 },
  input_image: { name: "input images", per: 1 },
} as const satisfies Readonly<Record<string, { readonly name: string; readonly per: number }>>;

export type PricedUnit = keyof typeof UNIT_TABLE;

export function isUnit(name: string): name is PricedUnit {
  return Object.hasOwn(UNIT_TABLE, name);
}

/** Returns the amount in a unit's price, such as `image` or `million characters`. */
export function formatPricedAmount(unit: PricedUnit): string {
  const { name, per } = UNIT_TABLE[unit];
  return per === 1 ? name.replace(/s$/, "") : `million ${name}`;
}
