/** The dialog that creates a token. `onCreated` receives the new token, which is shown only once. */
import { Select } from '@mantine/core';
import { useState } from 'react';
import { TOKEN_SCOPES, type TokenScope } from '../../../src/model/audit.ts';
import type { CreatedToken } from '../../../src/operations/tokens.ts';
import { post } from '../api/client';
import { useApiMutation } from '../api/mutation';
import {
  CredentialFields,
  hasCredentialFieldError,
  NEW_CREDENTIAL,
  toCredentialInput,
} from '../credentials/credential-fields';
import { FormDialog } from '../parts/form-dialog';

const SCOPES: readonly { readonly value: TokenScope; readonly label: string }[] = [
  { value: 'metrics', label: 'metrics: read /metrics alone' },
  { value: 'read', label: 'read: read everything except content' },
  { value: 'content', label: 'content: also read messages, reports and exports' },
  { value: 'full', label: 'full: also make changes, except tokens' },
];

interface CreateTokenDialogProps {
  readonly onCreated: (newToken: CreatedToken) => void;
  readonly onClose: () => void;
}

export function CreateTokenDialog({ onCreated, onClose }: CreateTokenDialogProps) {
  const [values, setValues] = useState(NEW_CREDENTIAL);
  const [scope, setScope] = useState<TokenScope>('full');
  const create = useApiMutation(
    () => post<CreatedToken>('/tokens', { ...toCredentialInput(values), scope }),
    ['tokens'],
  );
  return (
    <FormDialog
      opened
      title="Create a token"
      action="Create token"
      busy={create.isPending}
      disabled={values.name.trim() === ''}
      error={create.error}
      hasFieldError={hasCredentialFieldError(create.error)}
      onSubmit={() => create.mutate(undefined, { onSuccess: onCreated })}
      onClose={onClose}
    >
      <CredentialFields
        values={values}
        description="The name is the actor in the audit log, such as the program that uses the token."
        error={create.error}
        onChange={setValues}
      />
      <Select
        label="Scope"
        data={SCOPES}
        value={scope}
        allowDeselect={false}
        onChange={(value) => setScope(TOKEN_SCOPES.find((name) => name === value) ?? scope)}
      />
    </FormDialog>
  );
}
