// Folds repeated layers: modules whose paths differ only in a number.

const NUMBER = /^\d+$/;

// `encoder.layer.7.mlp` becomes `encoder.layer.*.mlp`, as in the terminal; the first part is a model's own name.
export function layerPattern(path) {
  const parts = path.split(".");
  return parts.map((part, at) => (at > 0 && NUMBER.test(part) ? "*" : part)).join(".");
}

// If siblings in a tree of modules are numbers, one node replaces all of them.
export function foldLayers(node) {
  const numbers = [...node.children.values()].filter((child) => child.category === null && NUMBER.test(child.label));
  if (node.path.length > 0 && numbers.length > 1) {
    const folded = numbers.reduce((sum, each) => merged(sum, each));
    folded.label = "*";
    for (const each of numbers) node.children.delete(each.label);
    node.children.set("*", moved(folded, [...node.path, "*"]));
  }
  node.children.forEach(foldLayers);
  return node;
}

function merged(one, other) {
  const children = new Map(one.children);
  for (const [key, child] of other.children) {
    children.set(key, children.has(key) ? merged(children.get(key), child) : child);
  }
  const sum = (name) => one[name] + other[name];
  return { ...one, bytes: sum("bytes"), blocks: sum("blocks"), modules: sum("modules"), children };
}

function moved(node, path) {
  const children = new Map();
  for (const [key, child] of node.children) children.set(key, moved(child, [...path, key]));
  return { ...node, path, children };
}
