/** Sets the return path of a domain. An empty field removes the return path. */
import { TextInput } from '@mantine/core';
import { useState } from 'react';
import type { DomainDetails } from '../../../src/operations/domain-details.ts';
import { patch, path } from '../api/client';
import { useApiMutation } from '../api/mutation';
import { FormDialog } from '../parts/form-dialog';

interface ReturnPathDialogProps {
  readonly domain: DomainDetails;
  /** Called with the changed domain. */
  readonly onChanged: (domain: DomainDetails) => void;
  readonly onClose: () => void;
}

export function ReturnPathDialog({ domain, onChanged, onClose }: ReturnPathDialogProps) {
  const [name, setName] = useState(domain.returnPath?.name ?? '');
  const enteredName = name.trim();
  const change = useApiMutation(
    () =>
      patch<DomainDetails>(path`/domains/${domain.domain}`, { returnPath: enteredName === '' ? 'none' : enteredName }),
    ['domains'],
    (changedDomain) =>
      changedDomain.returnPath === null
        ? `${changedDomain.domain} has no return path of its own.`
        : `The return path of ${changedDomain.domain} is ${changedDomain.returnPath.name}. Publish its records, then verify the domain.`,
  );
  return (
    <FormDialog
      opened
      title={`Return path of ${domain.domain}`}
      action={enteredName === '' ? 'Remove return path' : 'Set return path'}
      busy={change.isPending}
      disabled={enteredName === (domain.returnPath?.name ?? '')}
      error={change.error}
      onSubmit={() =>
        change.mutate(undefined, {
          onSuccess: (changedDomain) => {
            onChanged(changedDomain);
            onClose();
          },
        })
      }
      onClose={onClose}
    >
      <TextInput
        label="Return path"
        description={`The domain of the envelope sender, such as bounces.${domain.domain}. Without a name, messages use the return path of the service.`}
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        autoComplete="off"
        autoCapitalize="off"
        spellCheck={false}
        data-autofocus
      />
    </FormDialog>
  );
}
