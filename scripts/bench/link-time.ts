import { Agent, request } from "node:http";
import { quantile } from "./estimate.ts";

const ASKED = 30;

/** The round trip that a link adds, in ms: the median time of a call through it, less that of the same call past it. */
export async function linkRoundTrip(throughUrl: string, pastUrl: string): Promise<number> {
  const agent = new Agent({ keepAlive: true });
  try {
    const median = async (url: string): Promise<number> => {
      const times: number[] = [];
      for (let i = 0; i <= ASKED; i++) times.push(await timeOf(`${url}/healthz`, agent));
      return quantile(times.slice(1), 0.5); // the first one opens the connection
    };
    return (await median(throughUrl)) - (await median(pastUrl));
  } finally {
    agent.destroy();
  }
}

function timeOf(url: string, agent: Agent): Promise<number> {
  const begunAt = performance.now();
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { agent }, (response) => {
      response.resume();
      response.on("error", reject);
      response.on("end", () => resolve(performance.now() - begunAt));
    });
    outgoing.on("error", reject);
    outgoing.end();
  });
}
