import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { ACCOUNTS, LocalIssuer } from "../test/fakes/local-issuer.ts";
import type { Account } from "../test/fakes/local-issuer.ts";

const CLIENT = { id: "turnpike-local", secret: "the secret of this machine" };

export type ServedIssuer = {
  readonly url: string;
  readonly issuer: LocalIssuer;
  /** A region's variables, including the client secret. */
  readonly bindings: Readonly<Record<string, string>>;
  readonly close: () => void;
};

/**
 * Serves an identity provider on a free port or the given one. Uses `localhost` because the regions
 * use 127.0.0.1, so that browsers treat them as different sites.
 */
export async function serveIssuer(
  port = 0,
  accounts: readonly Account[] = ACCOUNTS,
): Promise<ServedIssuer> {
  const server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve) => server.listen(port, "localhost", resolve));
  const url = `http://localhost:${(server.address() as AddressInfo).port}`;
  const issuer = new LocalIssuer(url, [CLIENT], { accounts });
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { method = "GET" } = request;
    const hasBody = method === "POST";
    const asked = new Request(new URL(request.url ?? "/", url), {
      method,
      headers: Object.entries(request.headers).flatMap(([name, value]) =>
        typeof value === "string" ? [[name, value] as [string, string]] : [],
      ),
      ...(hasBody && { body: Buffer.concat(chunks) }),
    });
    const given = await issuer.handle(asked);
    response.writeHead(given.status, Object.fromEntries(given.headers));
    response.end(Buffer.from(await given.arrayBuffer()));
  };
  const entry = {
    id: "local",
    kind: "oidc",
    name: "this machine",
    issuer: url,
    client_id: CLIENT.id,
    secret: "LOCAL_LOGIN_SECRET",
  };
  const bindings = {
    LOGIN_ISSUERS: JSON.stringify([entry]),
    LOCAL_LOGIN_SECRET: CLIENT.secret,
    SIGN_UP: "on",
    SIGN_UP_CREDIT_MICRO: "1000000",
    SIGN_UP_CREDITS_A_DAY_MICRO: "1000000000",
  };
  return { url, issuer, bindings, close: () => server.close() };
}
