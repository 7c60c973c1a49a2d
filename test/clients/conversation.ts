/**
 * One conversation that every client holds: three turns with a tool. In the first the model calls it twice, one call
 * after the other's result.
 */
export const TURNS = [
  'call get_weather {"city":"Paris"} and then call get_weather {"city":"Rome"}',
  'call get_weather {"city":"Oslo"}',
  'call get_weather {"city":"Bonn"}',
] as const;

/** The tool, and what it was called with. */
export class Weather {
  readonly name = "get_weather";
  readonly description = "The weather of a city";
  readonly parameters = {
    type: "object" as const,
    properties: { city: { type: "string" as const } },
    required: ["city"],
    additionalProperties: false,
  };
  readonly cities: string[] = [];

  call(city: string): string {
    this.cities.push(city);
    return `21 degrees in ${city}`;
  }
}

/** What it is called with, in order, and what each turn ends with. */
export const HELD = {
  cities: ["Paris", "Rome", "Oslo", "Bonn"],
  said: ["Rome", "Oslo", "Bonn"].map((city) => `get_weather returned: 21 degrees in ${city}`),
};
