import { describe, expect, it } from "vitest";
import { aliasChanges } from "../../scripts/deploy/check.ts";

describe("deploy:check for a changed alias", () => {
  const kinds = new Map([
    ["smart", "chat"],
    ["embeddings/cheapest", "embeddings"],
    ["chat/b", "chat"],
    ["embed/b", "embeddings"],
  ] as const);
  const changes = (now: object, after: object, isAccepted = false): string[] =>
    aliasChanges({
      now: new Map(Object.entries(now)),
      after: new Map(Object.entries(after)),
      kindOf: (name) => kinds.get(name as "smart"),
      isAccepted,
    }).map(({ level, where }) => `${level} ${where}`);

  it.each([
    ["the same model", { "embeddings/cheapest": "a" }, { "embeddings/cheapest": "a" }, []],
    ["a new alias", {}, { "embeddings/cheapest": "a" }, []],
    ["another chat model", { smart: "a" }, { smart: "b" }, ["note smart"]],
    ["a chat alias that is no longer available", { smart: "a" }, {}, ["warning smart"]],
    [
      "another embeddings model",
      { "embeddings/cheapest": "a" },
      { "embeddings/cheapest": "b" },
      ["error embeddings/cheapest"],
    ],
    ["no embeddings model", { "embeddings/cheapest": "a" }, {}, ["error embeddings/cheapest"]],
    [
      "a fixed alias of another embeddings model",
      { mine: "a" },
      { mine: "embed/b" },
      ["error mine"],
    ],
    ["a fixed alias of another chat model", { mine: "chat/b" }, { mine: "c" }, ["note mine"]],
    ["a removed alias of an unknown kind", { mine: "a" }, {}, ["error mine"]],
  ])("reports the expected finding: %s", (_name, now, after, expected) => {
    expect(changes(now, after)).toEqual(expected);
    const accepted = expected.map((line) => line.replace("error", "warning"));
    expect(changes(now, after, true)).toEqual(accepted);
  });
});
