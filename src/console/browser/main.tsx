import { render } from "preact";
import { App } from "./app.tsx";
import { takeKeyOfAddress } from "./state/link.ts";
import { applyScheme } from "./state/scheme.ts";

const place = document.querySelector("#app");
if (place === null) throw new Error("the page has no place for the console");
applyScheme();
takeKeyOfAddress();
addEventListener("hashchange", takeKeyOfAddress);
render(<App />, place);
