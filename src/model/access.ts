/** What roles and scopes of tokens permit. The file imports no module of Node, because the dashboard uses it. */

/** Each role permits what the role before it permits. */
export type Role = 'viewer' | 'support' | 'operator' | 'admin';

export interface AccessRule {
  readonly role: Role;
  /** True if the result contains message bodies, raw source, captured mail, reports or an export. */
  readonly readsContent: boolean;
}

export const TOKEN_SCOPES = ['metrics', 'read', 'content', 'full'] as const;
/**
 * `metrics`: `/metrics` alone. `read`: what a viewer may see. `content`: also content. `full`: everything except
 * tokens.
 */
export type TokenScope = (typeof TOKEN_SCOPES)[number];
/** `all`: a signed-in page or a command. */
export type Scope = TokenScope | 'all';
