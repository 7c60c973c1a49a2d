import { session, useSession } from "../state/session.ts";
import { useLoaded } from "../state/reads.ts";
import { useQuery } from "../state/route.ts";
import { Code, Head } from "../ui/basics.tsx";
import { Shown } from "../ui/states.tsx";
import { send } from "../api/client.ts";
import type { Outcome } from "../api/client.ts";
import { ORIGIN } from "../lib/clients.ts";
import type { ClientBlocks } from "../lib/clients.ts";
import { goTo } from "../state/route.ts";

/** The blocks of the document about clients, as `scripts/site/clients.ts` wrote them. */
const BLOCKS = "/console/clients.json";
type Read = Outcome<readonly ClientBlocks[]>;

const placed = (text: string): string => text.replaceAll(ORIGIN, location.origin);

/** How to connect this client: the document's own blocks, with this region's address in them. */
export function Connect() {
  const [query, update] = useQuery();
  const { region } = useSession();
  const read = useLoaded(BLOCKS, async () => (await send(BLOCKS, {})) as Read);
  return (
    <>
      <Head
        title="Connect"
        text={`Blocks for each client, with the address of the ${region.toUpperCase()} region. Put a key in place of YOUR_KEY.`}
      >
        {session.get()?.key?.limited !== true && (
          <button type="button" class="primary" onClick={() => goTo(["keys"], { make: "1" })}>
            Create a key for it
          </button>
        )}
      </Head>
      <Shown read={read} height={480}>
        {(clients) => {
          const shown = clients.find(({ name }) => name === query["client"]) ?? clients[0];
          return (
            <>
              <div class="tabs" role="tablist" aria-label="Clients">
                {clients.map(({ name }) => (
                  <button
                    key={name}
                    type="button"
                    role="tab"
                    aria-selected={name === shown?.name}
                    onClick={() => update({ client: name })}
                  >
                    {name}
                  </button>
                ))}
              </div>
              {shown && (
                <section class="panel" role="tabpanel" aria-label={shown.name}>
                  {shown.parts.map(({ kind, text }) =>
                    kind === "code" ? (
                      <Code key={text} text={placed(text)} />
                    ) : (
                      <p key={text}>{placed(text)}</p>
                    ),
                  )}
                  <p class="after-code">
                    <a href="/docs/clients">More about each client</a>
                  </p>
                </section>
              )}
            </>
          );
        }}
      </Shown>
    </>
  );
}
