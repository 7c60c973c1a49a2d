import type { Context } from "hono";
import { Isolate } from "../http/isolate.ts";
import type { AppEnv } from "../http/context.ts";
import { invalid, refuse, success } from "../lib/failure.ts";
import type { Result } from "../lib/failure.ts";
import { logAlert, reasonOf } from "../lib/log.ts";
import type { Provider } from "../providers/provider.ts";
import type { Asked } from "./doors/door.ts";
import type { PaidRequest } from "./paid-request.ts";
import { isOfTokens, textsOfTokens, TokenTable } from "./token-texts.ts";

/** Where scripts/site/tokens.ts puts it among the static assets. */
const URL_OF_TABLE = "https://assets.invalid/tokens/cl100k_base.bin";

/** What an isolate keeps: the table once it was read, 1.2 MB, and the one reading that all who want it share. */
class KeptTable {
  #reading: Promise<TokenTable> | null = null;

  read(assets: Fetcher): Promise<TokenTable> {
    this.#reading ??= tableFrom(assets).catch((error: unknown) => {
      this.#reading = null; // the next request tries again
      throw error;
    });
    return this.#reading;
  }
}

const makeTable = (): KeptTable => new KeptTable();

async function tableFrom(assets: Fetcher): Promise<TokenTable> {
  const response = await assets.fetch(URL_OF_TABLE);
  if (!response.ok) throw new Error(`the token table is ${response.status}`);
  return new TokenTable(new Uint8Array(await response.arrayBuffer()));
}

/**
 * A request for embeddings of token ids as one for their texts, where a route of its model takes no ids; null where
 * there is nothing to do. Failures: as `textsOfTokens`; 503 while the table cannot be read.
 */
export async function withTexts(
  c: Context<AppEnv>,
  asked: Asked,
  {
    routes,
    providers,
  }: Pick<PaidRequest, "routes"> & { readonly providers: ReadonlyMap<string, Provider> },
): Promise<Result<Asked> | null> {
  const { request } = asked;
  if (request.kind !== "embeddings" || !isOfTokens(request.body.input)) return null;
  const { ASSETS: assets } = c.env as { readonly ASSETS?: Fetcher };
  const takesTokens = routes.every(({ provider }) => providers.get(provider)?.takesTokens === true);
  if (takesTokens) return null;
  if (assets === undefined) {
    return invalid(
      "This model takes text only: send 'input' as a string or a list of strings.",
      "input",
    );
  }
  let table: TokenTable;
  try {
    table = await Isolate.of(c.get("config")).get(makeTable).read(assets);
  } catch (error) {
    logAlert("token_table_unreadable", { reason: reasonOf(error) });
    return refuse({ kind: "storage_unavailable" });
  }
  const input = textsOfTokens(request.body.input, table);
  if (!input.ok) return input;
  return success({
    ...asked,
    request: { kind: "embeddings", body: { ...request.body, input: input.value } },
  });
}
