/** The release that this is, as package.json and the newest entry of CHANGELOG.md name it. */
export const RELEASE = "1.0.0";
