import { useState } from "preact/hooks";
import { change, latestOf, useRead } from "../state/reads.ts";
import { goTo, usePath } from "../state/route.ts";
import { useMay } from "../state/session.ts";
import { Panel, Time, Button } from "../ui/basics.tsx";
import { CloseOrganization } from "../ui/close-organization.tsx";
import { Confirm } from "../ui/dialog.tsx";
import { ReadResult } from "../ui/states.tsx";

const TOUCHES = ["/admin/v1/orgs"];
const NOT_MINE = <p class="muted">Only operators with the role “all” can do this.</p>;
type Props = { readonly id: string; readonly slug: string; readonly onClose: () => void };

export function Recovery() {
  const [, id = ""] = usePath();
  const may = useMay();
  const [doing, setDoing] = useState<"rebuild" | "close" | "restore" | null>(null);
  const read = useRead("GET /admin/v1/orgs/{id}", { path: { id } });
  const close = (): void => setDoing(null);
  return (
    <ReadResult read={read} height={240}>
      {({ slug, closed_at: closedAt, restorable_until: until }) => (
        <>
          <Panel title="A lost wallet">
            <p>
              Rebuilds a lost wallet from the database. A healthy wallet stays unchanged.{" "}
              <a href="/docs/run/operate#a-lost-wallet">When to</a>
            </p>
            {may("POST /admin/v1/orgs/{id}/rebuild-wallet") ? (
              <Button text="Rebuild the wallet…" onClick={() => setDoing("rebuild")} />
            ) : (
              NOT_MINE
            )}
          </Panel>
          {closedAt !== null && (
            <Panel title="Restore customer">
              {until === null ? (
                <p>This customer was removed permanently.</p>
              ) : (
                <p>
                  Closed <Time at={closedAt} />. You can restore its members, keys, webhooks and
                  balance until <Time at={until} />.
                </p>
              )}
              {until !== null &&
                (may("POST /admin/v1/orgs/{id}/restore") ? (
                  <Button text="Restore customer…" onClick={() => setDoing("restore")} />
                ) : (
                  NOT_MINE
                ))}
            </Panel>
          )}
          <Panel title="Close customer">
            <p>
              Its keys and sessions stop working, and its members lose access. You can restore it
              for 7 days. Then names and keys are deleted permanently. Its ledger stays.
            </p>
            {may("DELETE /admin/v1/orgs/{id}") ? (
              <Button text="Close customer…" class="danger" onClick={() => setDoing("close")} />
            ) : (
              NOT_MINE
            )}
          </Panel>
          {doing === "rebuild" && <Rebuild id={id} slug={slug} onClose={close} />}
          {doing === "restore" && <Restore id={id} slug={slug} onClose={close} />}
          {doing === "close" && <Close id={id} slug={slug} onClose={close} />}
        </>
      )}
    </ReadResult>
  );
}

function Rebuild({ id, slug, onClose }: Props) {
  return (
    <Confirm
      title={`Rebuild the wallet of ${slug}?`}
      verb="Rebuild it"
      run={() => change("POST /admin/v1/orgs/{id}/rebuild-wallet", { path: { id } }, TOUCHES)}
      onClose={onClose}
    >
      <p>Charges since the wallet last saved to the database, a few minutes ago, are lost.</p>
    </Confirm>
  );
}

function Restore({ id, slug, onClose }: Props) {
  return (
    <Confirm
      title={`Restore ${slug}?`}
      verb="Restore customer"
      run={() => change("POST /admin/v1/orgs/{id}/restore", { path: { id } }, TOUCHES)}
      onClose={onClose}
    >
      <p>Its keys work again, and its members can log in.</p>
    </Confirm>
  );
}

function Close({ id, slug, onClose }: Props) {
  const credits = latestOf(useRead("GET /admin/v1/orgs/{id}", { path: { id } }));
  return (
    <CloseOrganization
      noun="customer"
      slug={slug}
      credits={credits?.credits_micro ?? undefined}
      run={(givesUp) => {
        const query = { give_up_balance: givesUp };
        return change("DELETE /admin/v1/orgs/{id}", { path: { id }, query }, TOUCHES);
      }}
      onDone={() => goTo(["organizations"])}
      onClose={onClose}
    />
  );
}
