import { expect, it } from "vitest";
import { bindingsWith, errorOf, openAccount, send } from "./client.ts";

const DOCS_URL = "https://docs.example/docs";

it("every error contains a docs_url if DOCS_URL is set", async () => {
  const bindings = bindingsWith({ DOCS_URL });
  const { key } = await openAccount();
  const unknown = await send("/v1/models/none", { key, bindings });
  const nobody = await send("/v1/models", { bindings });
  const wrong = await send("/v1/users", { key, bindings, body: { external_id: 7 } });
  const docsUrls = await Promise.all(
    [unknown, nobody, wrong].map(async (response) => {
      const { error } = await response.json<{ error: { docs_url: string } }>();
      return error.docs_url;
    }),
  );
  expect(docsUrls).toEqual(
    ["model_not_found", "invalid_api_key", "invalid_request"].map(
      (at) => `${DOCS_URL}/errors#${at}`,
    ),
  );
});

it("errors contain no docs_url without DOCS_URL", async () => {
  expect(await errorOf(await send("/v1/models"), 401)).not.toHaveProperty("docs_url");
});

it("the Worker rejects an invalid DOCS_URL at startup", async () => {
  const bindings = bindingsWith({ DOCS_URL: "docs/" });
  expect((await errorOf(await send("/v1/models", { bindings }), 503)).code).toBe("misconfigured");
});
