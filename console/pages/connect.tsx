import { session, useSession } from "../state/session.ts";
import { useLoaded } from "../state/reads.ts";
import { useQuery } from "../state/route.ts";
import { Code, Head } from "../ui/basics.tsx";
import { Shown } from "../ui/states.tsx";
import { clientsIn } from "../lib/clients.ts";
import { goTo } from "../state/route.ts";

const PAGE = "/docs/clients.md";

/** How to connect this client: the document's own blocks, with this region's address in them. */
export function Connect() {
  const [query, update] = useQuery();
  const { region } = useSession();
  const read = useLoaded(PAGE, async () => {
    const text = await (await fetch(PAGE)).text();
    return { ok: true, value: clientsIn(text, location.origin) } as const;
  });
  return (
    <>
      <Head
        title="Connect"
        text={`Blocks for each client, with the address of the ${region.toUpperCase()} region. Put a key in place of $KEY.`}
      >
        {session.get()?.key?.limited !== true && (
          <button type="button" class="primary" onClick={() => goTo(["keys"], { make: "1" })}>
            Make a key for it
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
                    kind === "code" ? <Code key={text} text={text} /> : <p key={text}>{text}</p>,
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
