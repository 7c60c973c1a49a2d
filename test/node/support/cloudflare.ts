import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const NO_WORKER = { code: 10_007, message: "This Worker does not exist on your account." };
const PAGE = { page: 1, per_page: 50, count: 0, total_count: 0 };

/** Serves Cloudflare's API with an account that has no Worker yet. */
export async function serveEmptyAccount(): Promise<{
  readonly url: string;
  readonly close: () => void;
}> {
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      const url = request.url ?? "";
      const isWorker = /\/workers\/(?:services|scripts|workers)\//.test(url);
      const result = /memberships|accounts$/.test(url) ? [] : {};
      const body = isWorker
        ? { success: false, errors: [NO_WORKER], messages: [], result: null }
        : { success: true, errors: [], messages: [], result, result_info: PAGE };
      response.writeHead(isWorker ? 404 : 200, { "content-type": "application/json" });
      response.end(JSON.stringify(body));
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, close: () => server.close() };
}
