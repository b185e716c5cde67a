/** The routing policies: which route a message takes. */
import { Anchor, Button, Group, SegmentedControl, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import type { PolicyEntry } from '../../../src/operations/routes.ts';
import type { PolicyChange, RoutingPolicies } from '../../../src/operations/routing.ts';
import { AccountSelect } from '../accounts/account-select';
import { get, post, remove } from '../api/client';
import { useApiMutation } from '../api/mutation';
import { Callout } from '../parts/callout';
import { Card } from '../parts/card';
import { ConfirmDialog } from '../parts/confirm-dialog';
import { findFieldError } from '../parts/field-error';
import { FormDialog } from '../parts/form-dialog';
import { formatCount, formatNumber } from '../parts/number';
import { ErrorAlert } from '../parts/page-states';
import { describePolicy } from './texts';

type OpenDialog =
  | { readonly kind: 'set'; readonly policy: PolicyEntry | null }
  | { readonly kind: 'clear'; readonly policy: PolicyEntry };

export function Policies({ routes }: { readonly routes: readonly string[] }) {
  const routing = useQuery({ queryKey: ['routes', 'policies'], queryFn: () => get<RoutingPolicies>('/routing') });
  const [dialog, setDialog] = useState<OpenDialog | null>(null);
  const closeDialog = () => setDialog(null);
  const policies = routing.data?.policies ?? [];
  const hasOwn = policies.some(({ account, domain }) => account === null && domain === null);
  return (
    <Card
      title="Policies"
      secondary="the domain of the sender precedes the account"
      aside={
        <Button size="compact-sm" variant="default" onClick={() => setDialog({ kind: 'set', policy: null })}>
          Set policy
        </Button>
      }
      flush
    >
      {routing.isError ? <ErrorAlert error={routing.error} retry={routing.refetch} /> : null}
      <table className="list policies">
        <thead>
          <tr>
            <th scope="col">Messages</th>
            <th scope="col">Routes</th>
            <th scope="col" aria-label="Actions" />
          </tr>
        </thead>
        <tbody>
          {routing.data === undefined || hasOwn ? null : (
            <tr>
              <td>All messages</td>
              <td className="fill">
                <div className="two-lines">
                  <span>{describePolicy(routing.data.default)}</span>
                  <span>in order of name, until a policy is set</span>
                </div>
              </td>
              <td />
            </tr>
          )}
          {policies.map((policy) => (
            <tr key={`${policy.account} ${policy.domain}`}>
              <td>
                {policy.account === null ? (
                  describeScope(policy)
                ) : (
                  <Anchor component={Link} href={`/accounts/${encodeURIComponent(policy.account)}`} inherit>
                    {describeScope(policy)}
                  </Anchor>
                )}
              </td>
              <td className="fill">
                <div className="two-lines">
                  <span>{describePolicy(policy.list)}</span>
                  <span>{policy.list}</span>
                </div>
              </td>
              <td className="end actions">
                <Group gap={6} justify="flex-end" wrap="nowrap">
                  <Button
                    size="compact-sm"
                    variant="default"
                    aria-label={`Change the policy of ${describeScope(policy)}`}
                    onClick={() => setDialog({ kind: 'set', policy })}
                  >
                    Change
                  </Button>
                  <Button
                    size="compact-sm"
                    variant="default"
                    aria-label={`Clear the policy of ${describeScope(policy)}`}
                    onClick={() => setDialog({ kind: 'clear', policy })}
                  >
                    Clear
                  </Button>
                </Group>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {dialog?.kind === 'set' ? <PolicyDialog policy={dialog.policy} routes={routes} onClose={closeDialog} /> : null}
      {dialog?.kind === 'clear' ? <ClearDialog policy={dialog.policy} onClose={closeDialog} /> : null}
    </Card>
  );
}

function describeScope({ account, domain }: Pick<PolicyEntry, 'account' | 'domain'>): string {
  if (domain !== null) return `domain ${domain}`;
  return account === null ? 'All messages' : `account ${account}`;
}

const SCOPES = [
  { value: 'installation', label: 'All messages' },
  { value: 'account', label: 'Account' },
  { value: 'domain', label: 'Domain' },
] as const;

interface PolicyDialogProps {
  /** Null to add one. */
  readonly policy: PolicyEntry | null;
  readonly routes: readonly string[];
  readonly onClose: () => void;
}

function PolicyDialog({ policy, routes, onClose }: PolicyDialogProps) {
  const [scope, setScope] = useState<string>('installation');
  const [account, setAccount] = useState<string | null>(null);
  const [domain, setDomain] = useState('');
  const [list, setList] = useState(policy?.list ?? routes.join(','));
  const target =
    policy === null
      ? { ...(scope === 'account' ? { account: account ?? '' } : {}), ...(scope === 'domain' ? { domain } : {}) }
      : {
          ...(policy.account === null ? {} : { account: policy.account }),
          ...(policy.domain === null ? {} : { domain: policy.domain }),
        };
  const isIncomplete = list.trim() === '' || Object.values(target).includes('');
  const preview = useApiMutation(() => post<PolicyChange>('/routing', { ...target, list, dryRun: true }), []);
  const set = useApiMutation(
    () => post<PolicyChange>('/routing', { ...target, list }),
    ['routes', 'overview'],
    (change) =>
      `${describeScope(change)}: ${describePolicy(change.list ?? list)}, from the next attempt of each message.`,
  );
  const error = set.error ?? preview.error;
  const [listError, domainError] = [findFieldError(error, 'list'), findFieldError(error, 'domain')];
  const change = <Value,>(apply: (value: Value) => void) => {
    return (value: Value) => {
      preview.reset();
      set.reset();
      apply(value);
    };
  };
  return (
    <FormDialog
      opened
      title={policy === null ? 'Set a policy' : `Policy: ${describeScope(policy)}`}
      action="Set policy"
      busy={set.isPending}
      disabled={isIncomplete}
      error={error}
      hasFieldError={listError !== null || domainError !== null}
      onSubmit={() => set.mutate(undefined, { onSuccess: onClose })}
      onClose={onClose}
    >
      {policy === null ? (
        <SegmentedControl aria-label="For" data={[...SCOPES]} value={scope} onChange={change(setScope)} fullWidth />
      ) : null}
      {policy === null && scope === 'account' ? (
        <AccountSelect label="Account" value={account} onChange={change(setAccount)} required />
      ) : null}
      {policy === null && scope === 'domain' ? (
        <TextInput
          label="Domain of the sender"
          placeholder="example.com"
          value={domain}
          onChange={(event) => change(setDomain)(event.currentTarget.value)}
          error={domainError}
          required
          autoComplete="off"
          spellCheck={false}
        />
      ) : null}
      <TextInput
        label="Routes"
        description="In order of preference, as in main,backup; shares with weights, as in a:90,b:10,c"
        value={list}
        onChange={(event) => change(setList)(event.currentTarget.value)}
        error={listError}
        required
        autoComplete="off"
        spellCheck={false}
      />
      {preview.data?.preview == null ? (
        <Button
          variant="default"
          disabled={isIncomplete}
          loading={preview.isPending}
          onClick={() => preview.mutate(undefined)}
        >
          Preview with the last hour
        </Button>
      ) : (
        <Preview preview={preview.data.preview} />
      )}
    </FormDialog>
  );
}

function Preview({ preview }: { readonly preview: NonNullable<PolicyChange['preview']> }) {
  const { messages, isComplete, routes, waiting } = preview;
  const shares = [...routes, ...(waiting === 0 ? [] : [{ route: 'waiting for a route', messages: waiting }])];
  return (
    <div role="status">
      <Callout
        tone={waiting === 0 ? 'info' : 'warning'}
        title={messages === 0 ? 'No message of the last hour' : `Of ${formatCount(messages, 'message')}`}
      >
        {messages === 0
          ? 'None was accepted that this policy concerns.'
          : shares.map(({ route, messages: count }) => `${route}: ${formatNumber(count)}`).join(' · ')}
        {isComplete ? '' : ' (only the newest messages of the last hour)'}
      </Callout>
    </div>
  );
}

function ClearDialog({ policy, onClose }: { readonly policy: PolicyEntry; readonly onClose: () => void }) {
  const { account, domain } = policy;
  const query = new URLSearchParams({
    ...(account === null ? {} : { account }),
    ...(domain === null ? {} : { domain }),
  });
  const clear = useApiMutation(
    () => remove<PolicyChange>(`/routing?${query.toString()}`),
    ['routes', 'overview'],
    () => `Cleared the policy: ${describeScope(policy)}.`,
  );
  return (
    <ConfirmDialog
      opened
      title={`Clear the policy: ${describeScope(policy)}`}
      action="Clear policy"
      busy={clear.isPending}
      error={clear.error}
      onConfirm={() => clear.mutate(undefined, { onSuccess: onClose })}
      onClose={onClose}
    >
      Its messages take the routes of the next policy that is for them, from their next attempt.
    </ConfirmDialog>
  );
}
