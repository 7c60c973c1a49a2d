import { useQuery } from "../state/route.ts";
import { RequestErrors } from "./request-errors.tsx";
import { RequestStates } from "./request-states.tsx";

export function RequestChart() {
  return useQuery()[0]["status"] === "error" ? <RequestErrors /> : <RequestStates />;
}
