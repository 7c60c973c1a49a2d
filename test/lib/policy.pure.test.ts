import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  allowedRouteIndexes,
  allowsModel,
  isPolicyWithin,
  policySchema,
} from "../../src/shared/policy.ts";
import type { Policy } from "../../src/shared/policy.ts";

const subsetOf = (all: readonly string[]) => fc.option(fc.subarray([...all]), { nil: null });
const policies: fc.Arbitrary<Policy> = fc.record({
  allowed_models: subsetOf(["acme/one", "acme/two", "other/one", "acme/*", "other/*"]),
  allowed_providers: subsetOf(["a", "b"]),
  allowed_data_regions: subsetOf(["eu", "global"]),
});
const CANDIDATES = ["acme/one", "acme/two", "other/one", "third/one"].flatMap((model) =>
  ["a", "b", "c"].flatMap((provider) =>
    ["eu", "global"].map((region) => ({ sent: model, model, provider, region })),
  ),
);
const ONE_MODEL: Policy = {
  allowed_models: ["acme/one"],
  allowed_providers: null,
  allowed_data_regions: null,
};
const allowed = (policy: Policy | null) =>
  allowedRouteIndexes(policy === null ? [] : [{ ...policy, scope: "key" }], CANDIDATES);

describe("a list of allowed models", () => {
  it.each([
    [null, "smart", "acme/one", true],
    [[], "smart", "acme/one", false],
    [["acme/one"], "smart", "acme/one", true],
    [["acme/one"], "acme/one", "acme/one", true],
    [["acme/*"], "smart", "acme/one", true],
    [["acme/*"], "acmex/one", "acmex/one", false],
    [["acme"], "acme/one", "acme/one", false],
    [["smart"], "smart", "acme/one", true],
    [["smart"], "acme/one", "acme/one", false],
    [["*"], "acme/one", "acme/one", false],
  ])("the list %j allows the model named %s (%s): %s", (models, sent, id, passes) => {
    expect(allowsModel({ allowed_models: models, hasAliases: true }, { sent, id })).toBe(passes);
  });

  it("allows no alias unless hasAliases is set", () => {
    const names = { sent: "team/fast", id: "acme/one" };
    expect(allowsModel({ allowed_models: ["team/fast"] }, names)).toBe(false);
  });
});

describe("a combination of several policies", () => {
  it("allows only the routes that each policy allows", () => {
    fc.assert(
      fc.property(fc.array(policies, { maxLength: 4 }), (list) => {
        const layers = list.map((policy) => ({ ...policy, scope: "member" as const }));
        const each = list.map(allowed);
        const all = CANDIDATES.map((_, index) => index);
        expect(allowedRouteIndexes(layers, CANDIDATES)).toEqual(
          all.filter((index) => each.every((indexes) => indexes.includes(index))),
        );
      }),
    );
  });

  it("counts as narrower than another combination only if it allows no additional route", () => {
    const orNull = fc.option(policies, { nil: null });
    fc.assert(
      fc.property(orNull, orNull, (before, after) => {
        if (!isPolicyWithin(before, after)) return;
        const known = allowed(before);
        expect(allowed(after).filter((index) => !known.includes(index))).toEqual([]);
      }),
    );
  });

  it("applies to the model that serves a request, not to the requested name", () => {
    const layer = { ...ONE_MODEL, scope: "organization" as const };
    const route = { provider: "a", region: "eu" };
    const candidates = [
      { ...route, sent: "fast", model: "acme/one" },
      { ...route, sent: "acme/one", model: "other/one" },
    ];
    expect(allowedRouteIndexes([layer], candidates)).toEqual([0]);
  });

  it("allows every route if the list is null, and no route if the list is empty", () => {
    const all = { allowed_models: null, allowed_providers: null, allowed_data_regions: null };
    expect(allowed(all)).toHaveLength(CANDIDATES.length);
    expect(allowed({ ...all, allowed_models: [] })).toEqual([]);
    expect(allowed({ ...all, allowed_providers: [] })).toEqual([]);
    expect(allowed({ ...all, allowed_data_regions: [] })).toEqual([]);
  });

  it.each([
    [{ allowed_models: ["smart"] }],
    [{ allowed_models: ["*"] }],
    [{ allowed_models: ["acme/one*"] }],
    [{ allowed_providers: ["Open AI"] }],
    [{ allowed_data_regions: ["mars"] }],
    [{ allowed_model: [] }],
  ])("can't contain %j", (policy) => {
    expect(policySchema.safeParse(policy).success).toBe(false);
  });
});
