/** The paths of a document that have one of these tags, and of its components only what they refer to. */
export function partOf(document, tags) {
  const paths = Object.fromEntries(
    Object.entries(document.paths).filter(([, methods]) =>
      Object.values(methods).some(({ tags: own }) => own?.some((tag) => tags.includes(tag))),
    ),
  );
  const used = new Set();
  const look = (part) => {
    for (const [, reference] of JSON.stringify(part).matchAll(/"\$ref":"#\/components\/([^"]+)"/g)) {
      if (used.has(reference)) continue;
      used.add(reference);
      const [kind, name] = reference.split("/");
      look(document.components[kind][name]);
    }
  };
  look(paths);
  const components = Object.fromEntries(
    Object.entries(document.components).map(([kind, named]) => [
      kind,
      Object.fromEntries(
        Object.entries(named).filter(([name]) => kind === "securitySchemes" || used.has(`${kind}/${name}`)),
      ),
    ]),
  );
  return { ...document, paths, components };
}
