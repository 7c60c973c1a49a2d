import { expect, it } from "vitest";
import { parseAuthorizeResponse } from "../../src/models/requests/authorize.ts";
import type { HoldGrant } from "../../src/shared/contracts/wallet.ts";
import { micros } from "../../src/shared/money.ts";

it("every field of a HoldGrant reaches another region unchanged", () => {
  const grant: Required<HoldGrant> = {
    granted: micros(100),
    keepHours: 24,
    priceList: "list",
    warmRoute: "a/m",
    policies: [
      {
        allowed_models: ["a/*"],
        allowed_providers: null,
        allowed_data_regions: [],
        scope: "key",
        hasAliases: true,
      },
    ],
    paused: { kind: "paused", pauseId: "pau_1", scope: "key", reason: "Costs", until: null },
    routes: [0, 2],
    uncovered: [1],
    tokens: { granted: 5, limit: 9, remaining: 4, resetMs: 60_000 },
    tokensGranted: 7,
  };
  const read = parseAuthorizeResponse({ ok: true, ...grant });
  expect(read).toEqual({ unanswered: false, result: { ok: true, value: grant } });
});
