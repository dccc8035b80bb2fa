/** A stylesheet as text: bundled, minified, and with lengths that don't depend on the page's font size. */
declare module "*.css" {
  const text: string;
  export default text;
}
