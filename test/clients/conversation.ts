/**
 * A conversation for every client: three messages with a tool. For the first message, the model
 * calls the tool twice, the second time after the first result.
 */
export const TURNS = [
  'call get_weather {"city":"Paris"} and then call get_weather {"city":"Rome"}',
  'call get_weather {"city":"Oslo"}',
  'call get_weather {"city":"Bonn"}',
] as const;

/** The tool, with a record of its calls. */
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

/** The expected calls in order, and the end of each response. */
export const EXPECTED_CONVERSATION = {
  cities: ["Paris", "Rome", "Oslo", "Bonn"],
  texts: ["Rome", "Oslo", "Bonn"].map((city) => `get_weather returned: 21 degrees in ${city}`),
};
