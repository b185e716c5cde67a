/** What roles and scopes of tokens permit. The file imports no module of Node, because the dashboard uses it. */

/** The roles of people. Each role permits what the role before it permits. */
export type Role = 'viewer' | 'support' | 'operator' | 'admin';

/** What an operation requires of its actor. */
export interface AccessRule {
  /** The least role that may perform the operation. */
  readonly role: Role;
  /** True if the result contains message bodies, raw source, captured mail, reports or an export. */
  readonly readsContent: boolean;
}

export const TOKEN_SCOPES = ['metrics', 'read', 'content', 'full'] as const;
/**
 * `metrics`: `/metrics` alone. `read`: what a viewer may see. `content`: also content. `full`: everything that an
 * operator may do; no token makes tokens.
 */
export type TokenScope = (typeof TOKEN_SCOPES)[number];
/** The scope of an actor. `all`: a signed-in page or a command. */
export type Scope = TokenScope | 'all';
